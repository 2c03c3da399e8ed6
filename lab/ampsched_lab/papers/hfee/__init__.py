"""HFEE (IEEE Transactions on Computers 2020), reproduced on a simulated Exynos 5422."""

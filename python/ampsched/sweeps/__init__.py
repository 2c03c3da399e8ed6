"""Many simulations: a grid or a sample, kept in a folder, run anywhere, summed up.

`grid` says which, `keys` what determines each one's result, `folder` keeps results, `work` is what a worker does,
`running` hands out work, `result` sums up, `figures` draws, `sweep` puts them together, `optimise` searches.
"""

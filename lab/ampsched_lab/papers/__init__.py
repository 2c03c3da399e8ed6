"""Papers' experiments, repeated: a package and a row of `registry` each.

A package says what the paper's machines, programs and policies are (`setup`), runs them (`runs`), states the
paper's claims (claims.toml) and what is measured for them (`measurements`), draws (`figures`) and reports
(`report`). `claims` judges, `reproduction` puts the report together, and `plots` draws bars for all of them.
"""

//! Reads TOML tables with errors that name file, line, key, value and limit.

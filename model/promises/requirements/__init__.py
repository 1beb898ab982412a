"""The requirements as data: one TOML file per area, loaded by `model.promises.registry`."""

"""Class tx: select, commit, rollback."""

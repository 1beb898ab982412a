"""What an upgrade changes: the changes between two dialects (`changes`), what of it two targets show (`comparison`,
`causes`), and what of it a recorded application meets (`application`, `meeting`).
"""

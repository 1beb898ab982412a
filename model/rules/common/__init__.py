"""What several chapters share: finding what a method names, permissions, answers, and the steps that chapters offer."""

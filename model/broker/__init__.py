"""What a broker remembers, and the steps that change it. The rules are made of these steps."""

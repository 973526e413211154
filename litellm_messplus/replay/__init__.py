"""A recorded zoo through the same engine that serves: what would it have cost, and held?"""

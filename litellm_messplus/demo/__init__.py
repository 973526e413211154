"""Demonstration material: tasks of graded difficulty with answers a program can check, and a
client that sends them."""

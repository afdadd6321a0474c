"""Texts made of a plan, one package a target: today `graph`, the workflows as state diagrams.

A target is a pure function from a plan to text, the same on every machine; writing files belongs to whoever asked.
Absent: sources, their tree, anything that runs.
"""

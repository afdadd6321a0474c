"""The ground floor: values and their wire forms, spans, diagnostics, canonical JSON, error codes, limits.

Everything here is a plain value or a pure function over plain values; only the standard library is imported.
Absent on purpose: any knowledge of contracts, plans, stores or transports.
"""

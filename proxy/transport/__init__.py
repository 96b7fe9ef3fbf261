"""HTTP, both faces: what a client sends us, and what we send a downstream.

It reads and writes; what may go where is the exchange's to say (`proxy.exchange`).
"""

"""The outer ring: environment in, running service out.

Files:
    settings    every setting once; the one reader of the environment
    logs        structlog, and the scrubber behind it
    errors      why a start ends, in one sentence
    leash       runs a command that ends when we end
    children    a child process on that leash
    private     files that only their owner may read
    leftover    ends a store that an earlier run of ours left behind
    embedded    the embedded store as a child process
    wiring      composition root: settings and a store in, applications out
    tls         certificate and key files
    connections connections of clients, within limits
    descriptors how many files may be open
    serve       listens, serves, stops
    demo        the demonstration downstream as a child process, registered
    banner      what a person reads at the start
    main        the `sluicegate` command
"""

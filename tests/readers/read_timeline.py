#!/usr/bin/env python3
"""Prints the timelines of messages with stock python-qpid-proton.

    read_timeline.py amqp://HOST:PORT/ADDRESS   of the messages received from there
    read_timeline.py                            of standard input: one a line, in hexadecimal
"""

import sys

ANNOTATION = "x-opt-hopline-timeline"
MISSING = -(2**63)
STAGES = dict(enumerate(
    "DUE CREATE PUBLISH SERIALIZE SEND RECEIVE DESERIALIZE ENQUEUE DEQUEUE REPUBLISH QUEUE_EVENT "
    "NEXT_EVENT KERNEL_SCHED KERNEL_SEND KERNEL_ACK KERNEL_RECEIVE".split(), start=1))
STAGES |= {32: "FOREIGN_INGRESS", 33: "FOREIGN_SENT"}


def read_timeline(octets):
    """Yields (node, clock, stage, detail, ns on that clock or None) for each stamp."""
    octets = bytes(octets)  # Proton hands out a memoryview
    if len(octets) < 20 or octets[0] != 1:
        raise ValueError("not a timeline of version 1")
    node = clock = None
    at = 20
    while at < len(octets):
        # n is the detail of a stamp, and the length of any other record.
        kind, n = octets[at], int.from_bytes(octets[at + 1:at + 2], "big")
        end = at + (10 if kind < 0x80 else 2 + n)
        malformed = kind == 0 or (kind < 0x80 and node is None) or (kind == 0x80 and n < 33)
        if malformed or end > len(octets):
            raise ValueError(f"malformed record at octet {at}")
        if kind < 0x80:
            ns = int.from_bytes(octets[at + 2:end], "big", signed=True)
            stage = STAGES.get(kind, f"#{kind}")
            yield node, clock, stage, n, None if ns == MISSING else ns
        elif kind == 0x80:
            clock = f"{octets[at + 2]}:{octets[at + 3:at + 19].hex()}"
            node = octets[at + 35:end].decode(errors="replace")
        at = end


def show(octets):
    stamps = list(read_timeline(octets))
    dropped = int.from_bytes(octets[2:4], "big")
    overflow = f" overflow, {dropped} dropped" if octets[1] & 1 else ""
    print(f"timeline {octets[4:20].hex()}{overflow}")
    for node, clock, stage, detail, ns in stamps:
        print(node, clock, stage, detail, "-" if ns is None else ns)


def receive(url):
    from proton.handlers import MessagingHandler
    from proton.reactor import Container

    class Receiver(MessagingHandler):
        def on_start(self, event):
            event.container.create_receiver(url)

        def on_message(self, event):
            octets = (event.message.annotations or {}).get(ANNOTATION)
            if octets is not None:
                show(octets)

    Container(Receiver()).run()


def main():
    try:
        if len(sys.argv) > 1:
            receive(sys.argv[1])
        for line in sys.stdin if len(sys.argv) == 1 else []:
            show(bytes.fromhex(line))
    except ValueError as error:
        sys.exit(f"read_timeline.py: {error}")
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()

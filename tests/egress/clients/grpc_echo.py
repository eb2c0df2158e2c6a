"""A gRPC service without generated code, and its client.

    grpc_echo.py serve ADDR:PORT
    grpc_echo.py HOST:PORT [AUTHORITY]     one call, and one with many answers; prints "hello" when both went well
"""
import sys
import threading
from concurrent import futures

import grpc


def serve(address):
    handlers = grpc.method_handlers_generic_handler("t.Echo", {
        "Say": grpc.unary_unary_rpc_method_handler(lambda request, _: request),
        "Many": grpc.unary_stream_rpc_method_handler(lambda request, _: iter([request] * 100)),
    })
    server = grpc.server(futures.ThreadPoolExecutor(4))
    server.add_generic_rpc_handlers((handlers,))
    server.add_insecure_port(address)
    server.start()
    threading.Event().wait()


def main():
    if sys.argv[1] == "serve":
        serve(sys.argv[2])
    options = [("grpc.default_authority", sys.argv[2])] if len(sys.argv) > 2 else []
    with grpc.insecure_channel(sys.argv[1], options=options) as channel:
        try:
            said = channel.unary_unary("/t.Echo/Say")(b"hel", timeout=25, metadata=[("x-long", "y" * 6000)])
            many = list(channel.unary_stream("/t.Echo/Many")(b"lo" * 4000, timeout=25))
            print((said + many[99][:2]).decode() if len(many) == 100 else "short")
        except grpc.RpcError as e:
            print(e.code().name, e.details())
            sys.exit(1)


main()

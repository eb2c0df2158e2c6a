// A TLS server of Go's library, which looks at no version in a record's head: tls ADDRESS:PORT KEY CERTIFICATE
// It answers each request of a connection; without Go's HTTP server, which takes longer to compile than all the rest.
package main

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"net"
	"os"
)

func serve(c net.Conn) {
	defer c.Close()
	for lines := bufio.NewScanner(c); lines.Scan(); {
		if lines.Text() == "" {
			fmt.Fprint(c, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello\n")
		}
	}
}

func main() {
	pair, err := tls.LoadX509KeyPair(os.Args[3], os.Args[2])
	if err == nil {
		var l, e = tls.Listen("tcp", os.Args[1], &tls.Config{Certificates: []tls.Certificate{pair}})
		for err = e; err == nil; {
			var c net.Conn
			if c, err = l.Accept(); err == nil {
				go serve(c)
			}
		}
	}
	fmt.Fprintln(os.Stderr, "tls:", err)
	os.Exit(1)
}

// The same in Go, whose own resolver asks the name server without the C library (CGO_ENABLED=0).
package main

import (
	"fmt"
	"io"
	"net"
	"os"
)

func main() {
	c, err := net.Dial("tcp", os.Args[1]+":"+os.Args[2])
	if err != nil {
		fmt.Fprintln(os.Stderr, "plain:", err)
		os.Exit(1)
	}
	fmt.Fprintf(c, "GET %s HTTP/1.0\r\nHost: %s:%s\r\n\r\n", os.Args[3], os.Args[1], os.Args[2])
	text, err := io.ReadAll(c)
	if err != nil {
		fmt.Fprintln(os.Stderr, "plain:", err)
		os.Exit(1)
	}
	os.Stdout.Write(text)
}

// A TLS server of Go's library, which looks at no version in a record's head: tls ADDRESS:PORT KEY CERTIFICATE
package main

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
)

func main() {
	pair, err := tls.LoadX509KeyPair(os.Args[3], os.Args[2])
	if err == nil {
		var l, e = tls.Listen("tcp", os.Args[1], &tls.Config{Certificates: []tls.Certificate{pair}})
		err = e
		if e == nil {
			err = http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprintln(w, "hello") }))
		}
	}
	fmt.Fprintln(os.Stderr, "tls:", err)
	os.Exit(1)
}

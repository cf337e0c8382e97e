package config

import (
	"fmt"
	"net"
	"path/filepath"
	"regexp"
	"strconv"
)

func (v *validator) http() {
	h := v.HTTP
	if t := h.TLS; t != nil {
		v.required("http.tls.cert_file", t.CertFile, "/etc/baton/tls.crt")
		v.required("http.tls.key_file", t.KeyFile, "/etc/baton/tls.key")
	}
	for i, name := range h.Hosts {
		if !hostName.MatchString(name) {
			v.fail(fmt.Sprintf("http.hosts[%d]", i), "%q: write a host name without a port, for example baton.example.com", name)
		}
	}
	for i, p := range h.TrustedProxies {
		if _, err := proxyOf(p); err != nil {
			v.fail(fmt.Sprintf("http.trusted_proxies[%d]", i), "%q: write an address or a network, for example 127.0.0.1 or 10.0.0.0/8", p)
		}
	}
	if h.ReadTokenFile != "" && h.TokenFile == "" {
		v.fail("http.read_token_file", "needs http.token_file, too, because otherwise the node accepts no token")
	}
	if h.ReadTokenFile != "" && filepath.Clean(h.ReadTokenFile) == filepath.Clean(h.TokenFile) {
		v.fail("http.read_token_file", "this is the same file as http.token_file; write another token into another file")
	}
	if h.Listen == Off {
		return
	}
	host, port, err := net.SplitHostPort(h.Listen)
	if n, e := strconv.Atoi(port); err != nil || e != nil || n < 0 || n > 65535 {
		v.fail("http.listen", "%q: write host:port, for example 127.0.0.1:9747, or off", h.Listen)
		return
	}
	if h.TokenFile != "" && h.TLS == nil && !loopback(host) {
		v.fail("http.token_file", "http.listen is %s, which other hosts can reach, so others on the network can read the token: "+
			"add http.tls, or listen on 127.0.0.1 behind a proxy that encrypts", h.Listen)
	}
}

var hostName = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?(\.[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?)*\.?$`)

// loopback reports whether an address can be reached only from this host.
func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

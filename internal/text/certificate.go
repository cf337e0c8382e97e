package text

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/netip"
)

// NoAltName returns advice for a failed connection, if the server's certificate contains the host only in its common name. TLS clients no
// longer use the common name. For any other error, NoAltName returns "".
func NoAltName(err error) string {
	wrong, ok := errors.AsType[x509.HostnameError](err)
	if !ok {
		return ""
	}
	if c := wrong.Certificate; c == nil || len(c.DNSNames)+len(c.IPAddresses)+len(c.URIs)+len(c.EmailAddresses) > 0 {
		return ""
	}
	kind := "DNS"
	if _, err := netip.ParseAddr(wrong.Host); err == nil {
		kind = "IP"
	}
	return fmt.Sprintf("the server's certificate has no subjectAltName, and its common name (CN) does not count: ask for a certificate "+
		"with subjectAltName=%s:%s", kind, wrong.Host)
}

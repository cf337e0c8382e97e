package daemon

import (
	"net"

	"baton/internal/certificate"
	"baton/internal/config"
	"baton/internal/status"
)

// serving is how page and API are served.
func (n *node) serving(h config.HTTP, encryption *certificate.Certificate) status.Config {
	d := newDesk(n)
	c := status.Config{
		Source: n.snapshot, Health: n.health, Metrics: n.metrics, Logger: n.log.Named("http"), NodeID: n.id, Version: n.options.Version,
		Desk: d, Inquiry: d, Do: d.do, TokenFile: h.TokenFile, Hosts: h.Hosts,
	}
	if encryption != nil {
		c.TLS = encryption.Serve(c.Logger)
	}
	return c
}

// existing are the listeners that there are.
func existing(listeners ...net.Listener) []net.Listener {
	var found []net.Listener
	for _, l := range listeners {
		if l != nil {
			found = append(found, l)
		}
	}
	return found
}

// secured checks what secures page and API before anything is served; nil: no encryption.
func secured(h config.HTTP) (*certificate.Certificate, error) {
	if h.TokenFile != "" {
		if err := status.CheckToken(h.TokenFile); err != nil {
			return nil, err
		}
	}
	return certificate.Open(h)
}

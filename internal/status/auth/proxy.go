package auth

import (
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"baton/internal/status/web"
	"baton/internal/text"
)

// mayCarry reports whether a connection is safe for the token: it is encrypted or stays inside
// this host, and no trusted proxy received the request unencrypted.
func (a *Auth) mayCarry(r *http.Request) bool {
	return (r.TLS != nil || overLoopback(r) || OverSocket(r)) && a.scheme(r) != "http"
}

// scheme returns the scheme of the browser's request; "": unknown. The header of a proxy counts
// if the configuration trusts the proxy.
func (a *Auth) scheme(r *http.Request) string {
	if r.TLS != nil {
		return "https"
	}
	said := r.Header.Values("X-Forwarded-Proto")
	if len(said) == 0 || !a.trusts(r.RemoteAddr) {
		return ""
	}
	for scheme := range strings.SplitSeq(strings.Join(said, ","), ",") { // one unencrypted hop in a chain of proxies is enough
		if !strings.EqualFold(strings.TrimSpace(scheme), "https") {
			return "http"
		}
	}
	return "https"
}

func (a *Auth) trusts(remote string) bool {
	peer, err := netip.ParseAddrPort(remote)
	if err != nil {
		return false
	}
	for _, p := range a.proxies {
		if p.Contains(peer.Addr().Unmap()) {
			return true
		}
	}
	return false
}

// Unencrypted reports whether a trusted proxy received the request without encryption.
func (a *Auth) Unencrypted(r *http.Request) bool { return a.scheme(r) == "http" }

// insecure returns the reason why a connection may not carry the token.
func (a *Auth) insecure(r *http.Request) error {
	if a.scheme(r) == "http" {
		return errPlainProxy
	}
	return errInsecure
}

var errPlainProxy = web.Refuse(http.StatusForbidden, "a token is not taken over a network that can read it: the proxy says "+
	"(X-Forwarded-Proto) that the request came without encryption; open the page by https")

// forgery returns the error for a request that seems to come from another site. A proxy that
// replaces the host name makes every request look like that: then the error names the setting.
func forgery(r *http.Request) error {
	origin, err := url.Parse(r.Header.Get("Origin"))
	if err != nil || origin.Host == "" || strings.EqualFold(origin.Host, r.Host) || !forwarded(r) && !overLoopback(r) {
		return errForgery
	}
	const most = 100
	return web.Refuse(http.StatusForbidden, fmt.Sprintf("this does not come from the page of this node: your browser asked %s, and this "+
		"node was asked as %s. If a proxy is between, have it pass the name on (nginx: proxy_set_header Host $http_host), and add "+
		"%s to http.hosts of this node", text.Clip(origin.Host, most), text.Clip(r.Host, most), text.Clip(origin.Hostname(), most)))
}

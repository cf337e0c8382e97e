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

// mayCarry reports whether a connection is safe for the token: encrypted, or inside this host, and
// not what a proxy has received unencrypted.
func (a *Auth) mayCarry(r *http.Request) bool {
	return (r.TLS != nil || overLoopback(r) || OverSocket(r)) && a.scheme(r) != "http"
}

// scheme is by which the browser has asked, as far as that is known: what a proxy says counts if
// the configuration trusts it. "": it is not known.
func (a *Auth) scheme(r *http.Request) string {
	if r.TLS != nil {
		return "https"
	}
	said := r.Header.Values("X-Forwarded-Proto")
	if len(said) == 0 || !a.trusts(r.RemoteAddr) {
		return ""
	}
	for scheme := range strings.SplitSeq(strings.Join(said, ","), ",") { // of several proxies the weakest counts
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

// Unencrypted reports whether a trusted proxy says that it was asked without encryption.
func (a *Auth) Unencrypted(r *http.Request) bool { return a.scheme(r) == "http" }

// insecure says why a connection may not carry the token.
func (a *Auth) insecure(r *http.Request) error {
	if a.scheme(r) == "http" {
		return errPlainProxy
	}
	return errInsecure
}

var errPlainProxy = web.Refuse(http.StatusForbidden, "a token is not taken over a network that can read it: the proxy says "+
	"(X-Forwarded-Proto) that it was asked without encryption; open the page by https")

// forgery says why a request is taken for another site's. A proxy that asks under a name of its own
// makes every page look like that: then it says what to set.
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

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

// mayCarry reports whether a connection is safe for a token. The connection must be encrypted or stay inside of this host, and no trusted
// proxy may have received the request unencrypted.
func (a *Auth) mayCarry(r *http.Request) bool {
	return (r.TLS != nil || overLoopback(r) || OverSocket(r)) && a.scheme(r) != "http"
}

// scheme returns the scheme of the browser's request, or "" if it is unknown. It uses the header of a proxy only if the configuration
// trusts the proxy.
func (a *Auth) scheme(r *http.Request) string {
	if r.TLS != nil {
		return "https"
	}
	said := r.Header.Values("X-Forwarded-Proto")
	if len(said) == 0 || !a.trusts(r.RemoteAddr) {
		return ""
	}
	for scheme := range strings.SplitSeq(strings.Join(said, ","), ",") { // one unencrypted connection in a chain of proxies is enough
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

// insecure returns the error that says why a connection may not carry a token.
func (a *Auth) insecure(r *http.Request) error {
	if a.scheme(r) == "http" {
		return errPlainProxy
	}
	return errInsecure
}

var errPlainProxy = web.Refuse(http.StatusForbidden, "this node accepts no token over a network that can read it: the proxy says "+
	"(X-Forwarded-Proto) that the request came without encryption; open the page by https")

// forgery returns the error for a request that seems to come from another site. A proxy that replaces the host name makes every
// request look like that. In that case the error names the setting that solves this.
func forgery(r *http.Request) error {
	origin, err := url.Parse(r.Header.Get("Origin"))
	if err != nil || origin.Host == "" || strings.EqualFold(origin.Host, r.Host) || !forwarded(r) && !overLoopback(r) {
		return errForgery
	}
	const most = 100
	return web.Refuse(http.StatusForbidden, fmt.Sprintf("this request does not come from the page of this node: "+
		"your browser sent it to %s, and this "+
		"node got it for the host %s. If there is a proxy, let it pass the host name on (nginx: proxy_set_header Host "+
		"$http_host), and add "+
		"%s to http.hosts of this node", text.Clip(origin.Host, most), text.Clip(r.Host, most), text.Clip(origin.Hostname(), most)))
}

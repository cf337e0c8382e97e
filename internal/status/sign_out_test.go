package status

import (
	"net/http"
	"net/url"
	"testing"
)

func TestNobodyIsSignedOutByAnotherPage(t *testing.T) {
	o := newOperator(t)
	csrf := url.Values{"csrf": {o.confirms("/confirm?action=run&job=users").Get("csrf")}}
	for name, send := range map[string]func() int{
		"from another site": func() int {
			return browse(o.server, "POST", "/sign-out", csrf, o.cookies, "Sec-Fetch-Site", "cross-site").Code
		},
		"without a CSRF token": func() int { return browse(o.server, "POST", "/sign-out", nil, o.cookies).Code },
	} {
		if code := send(); code != http.StatusForbidden {
			t.Errorf("%s: %d", name, code)
		}
		o.confirms("/confirm?action=run&job=users") // only possible for a user who has signed in
	}
	if rec := browse(o.server, "POST", "/sign-out", csrf, o.cookies); rec.Code != http.StatusSeeOther {
		t.Errorf("from the own page: %d", rec.Code)
	}
	if rec := browse(o.server, "GET", "/confirm?action=run&job=users", nil, o.cookies); rec.Code == http.StatusOK {
		t.Error("still signed in")
	}
}

package auth

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// What a browser says of where an order comes from: by the first it may come with a token, by the
// second it may live on a session.
func TestAnOrderMaySayNothingOfItsOriginAndASessionsMayNot(t *testing.T) {
	for said, want := range map[[2]string]struct{ order, session bool }{
		{"", ""}:                                  {true, false}, // no browser
		{"", "http://localhost:9747"}:             {true, true},
		{"", "https://localhost"}:                 {false, false},
		{"", "http://localhost:9748"}:             {false, false},
		{"", "null"}:                              {false, false},
		{"", "file://"}:                           {false, false},
		{"", "http://"}:                           {false, false},
		{"", "%"}:                                 {false, false},
		{"same-origin", ""}:                       {true, true},
		{"same-origin", "null"}:                   {true, true}, // a page without a referrer
		{"none", ""}:                              {true, false},
		{"same-site", "http://localhost:9748"}:    {false, false},
		{"same-site", "http://localhost:9747"}:    {false, false},
		{"cross-site", "http://evil.example"}:     {false, false},
		{"something-new", "http://evil.example"}:  {false, false},
		{"none", "http://localhost:9747"}:         {true, false},
		{"cross-site", "http://localhost:9747"}:   {false, false},
		{"same-origin", "http://localhost:9747"}:  {true, true},
		{"something-new", "http://localhost:974"}: {false, false},
	} {
		r := httptest.NewRequest(http.MethodPost, "http://localhost:9747/", nil)
		for i, name := range []string{"Sec-Fetch-Site", "Origin"} {
			if said[i] != "" {
				r.Header.Set(name, said[i])
			}
		}
		if order, session := crossOrigin.Check(r) == nil, fromOwnPage(r); order != want.order || session != want.session {
			t.Errorf("%q: an order passes %t, one of a session %t, want %+v", said, order, session, want)
		}
	}
}

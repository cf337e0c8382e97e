package auth

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestAnOrderMaySayNothingOfItsOriginAndASessionsMayNot checks which headers about its origin an order may have. The first result is for an
// order with a token, and the second result is for an order of a session.
func TestAnOrderMaySayNothingOfItsOriginAndASessionsMayNot(t *testing.T) {
	for said, want := range map[[2]string]struct{ order, session bool }{
		{"", ""}:                                  {true, false}, // this is not a browser
		{"", "http://localhost:9747"}:             {true, true},
		{"", "https://localhost"}:                 {false, false},
		{"", "http://localhost:9748"}:             {false, false},
		{"", "null"}:                              {false, false},
		{"", "file://"}:                           {false, false},
		{"", "http://"}:                           {false, false},
		{"", "%"}:                                 {false, false},
		{"same-origin", ""}:                       {true, true},
		{"same-origin", "null"}:                   {true, true}, // from a page without a referrer
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

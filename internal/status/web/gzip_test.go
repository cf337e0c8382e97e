package web

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestABodyIsCompressedForWhoReadsThat(t *testing.T) {
	long := []byte(strings.Repeat("all work and no play. ", 1000))
	for accept, want := range map[string]bool{
		"gzip": true, "br, GZIP;q=0.5": true, "*": true, "deflate, gzip, br": true,
		"": false, "br": false, "gzip;q=0": false, "gzip;q=0.000": false, "identity, gzip;q=x": false,
	} {
		r, h := httptest.NewRequest(http.MethodGet, "/", nil), http.Header{}
		if accept != "" {
			r.Header.Set("Accept-Encoding", accept)
		}
		body := Compressed(h, r, long)
		if got := h.Get("Content-Encoding") == "gzip"; got != want || h.Get("Vary") != "Accept-Encoding" {
			t.Errorf("%q: compressed: %t, want %t; %v", accept, got, want, h)
		}
		if !want {
			if !bytes.Equal(body, long) {
				t.Errorf("%q: the body is another one", accept)
			}
			continue
		}
		z, err := gzip.NewReader(bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(z); err != nil || !bytes.Equal(text, long) || len(body) > len(long)/20 {
			t.Errorf("%q: %d bytes in %d, %v", accept, len(text), len(body), err)
		}
	}
	h := http.Header{}
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("Accept-Encoding", "gzip")
	if short := Compressed(h, r, long[:500]); len(short) != 500 || h.Get("Content-Encoding") != "" {
		t.Error("a short body is compressed")
	}
}

package web

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// compressFrom is the minimum size in bytes of an answer that is compressed. A smaller answer fits into one packet anyway.
const compressFrom = 1400

var compressors = sync.Pool{New: func() any {
	w, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // the level is valid
	return w
}}

// Compressed returns the body and sets the headers. If the client of r accepts gzip and the body is not small, the returned body is
// compressed. If another site could choose a part of a body that contains a secret, the compressed length would reveal the secret (BREACH).
// Another site cannot do so, because a browser does not send this page's cookie with requests from other sites.
func Compressed(h http.Header, r *http.Request, body []byte) []byte {
	h.Add("Vary", "Accept-Encoding")
	if len(body) < compressFrom || !TakesGzip(r) {
		return body
	}
	var out bytes.Buffer
	w := compressors.Get().(*gzip.Writer)
	defer compressors.Put(w)
	w.Reset(&out)
	if _, err := w.Write(body); err != nil || w.Close() != nil {
		return body
	}
	h.Set("Content-Encoding", "gzip")
	return out.Bytes()
}

// TakesGzip reports whether the client of r accepts gzip.
func TakesGzip(r *http.Request) bool {
	for _, header := range r.Header.Values("Accept-Encoding") {
		for coding := range strings.SplitSeq(header, ",") {
			name, parameter, _ := strings.Cut(coding, ";")
			if name = strings.ToLower(strings.TrimSpace(name)); name != "gzip" && name != "*" {
				continue
			}
			_, weight, given := strings.Cut(parameter, "=")
			q, err := strconv.ParseFloat(strings.TrimSpace(weight), 64)
			return !given || err == nil && q > 0
		}
	}
	return false
}

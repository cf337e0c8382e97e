package web

import (
	"bytes"
	"io"
	"net/http"
)

// TakeBody reads a body whole; an error comes up again when it is decoded.
func TakeBody(r *http.Request) (whole bool) {
	if r.Body == nil {
		return true
	}
	conn := connectionOf(r)
	conn.wait() // for its sender
	body, err := io.ReadAll(r.Body)
	conn.resume()
	r.Body, r.ContentLength = io.NopCloser(io.MultiReader(bytes.NewReader(body), broken{err})), int64(len(body))
	if err != nil {
		r.ContentLength = -1
	}
	return err == nil
}

// broken is the end of what could not be read on.
type broken struct{ err error }

func (b broken) Read([]byte) (int, error) {
	if b.err == nil {
		return 0, io.EOF
	}
	return 0, b.err
}

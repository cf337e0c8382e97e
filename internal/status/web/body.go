package web

import (
	"bytes"
	"io"
	"net/http"
)

// TakeBody reads the whole body of a request into memory, and reports whether this succeeded. If reading fails, the request's new body
// returns the same error after the bytes that were read.
func TakeBody(r *http.Request) (whole bool) {
	if r.Body == nil {
		return true
	}
	conn := connectionOf(r)
	conn.wait() // waits for the sender
	body, err := io.ReadAll(r.Body)
	conn.resume()
	r.Body, r.ContentLength = io.NopCloser(io.MultiReader(bytes.NewReader(body), broken{err})), int64(len(body))
	if err != nil {
		r.ContentLength = -1
	}
	return err == nil
}

// broken is the end of a body. It returns the error of a failed read.
type broken struct{ err error }

func (b broken) Read([]byte) (int, error) {
	if b.err == nil {
		return 0, io.EOF
	}
	return 0, b.err
}

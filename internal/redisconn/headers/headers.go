// Package headers limits the size of Redis replies before anything allocates memory for them.
//
// The client library believes each header: for "$1000000000000" it makes a buffer of that size. A negative or huge size panics in a
// goroutine where nothing can recover. [Conn] is between the socket and the library. It reads the headers as they pass, refuses sizes
// above a limit, and holds a long text back until the server has sent it. So memory grows with the received bytes, never with an
// announced size. Code that parses replies itself calls [Text] and [Total].
package headers

import (
	"errors"
	"fmt"
	"math"
)

// These are the limits of one reply. Each limit is above the largest valid reply to a request of baton.
const (
	// MostText is the maximum length of a text, in bytes. Redis accepts no longer text (proto-max-bulk-len).
	MostText = 512 << 20
	// MostBytes is the maximum for all texts of a reply together, in bytes. baton reads records in pages of about 8 MiB. A page
	// becomes larger only because of one long record, or if records suddenly become long.
	MostBytes = 1 << 30
	// MostElements is the maximum for all arrays of a reply together. CLUSTER SLOTS has up to 500,000 elements, if each slot has
	// another owner than its neighbours. COMMAND has 20,000. Other replies are pages of some ten thousand elements at most.
	MostElements = 4 << 20
	// MostDepth is how deep arrays may nest. COMMAND has 12 levels.
	MostDepth = 32
	// MostLine is the maximum length of a line: a status, a refusal or a number.
	MostLine = 64 << 10
)

// LimitError means that a reply exceeds a limit.
type LimitError struct {
	Server string // the server's address; may be empty
	What   string // the announced size, such as "a text of 9000000000000000000 bytes"
	Limit  string
}

func (e *LimitError) Error() string {
	from := "the server"
	if e.Server != "" {
		from = e.Server
	}
	return fmt.Sprintf("%s announces %s, but baton accepts at most %s: is this server a Redis? If it is, a value is too large: "+
		"make the value smaller, or remove its key or field from the job", from, e.What, e.Limit)
}

// Text checks the announced size of one text.
func Text(size int) error {
	if size > MostText {
		return &LimitError{What: fmt.Sprintf("a text of %s bytes", number(size)), Limit: "512 MiB"}
	}
	return nil
}

// Total checks the total numbers of elements and of text bytes that a reply has so far.
func Total(elements, bytes int) error {
	switch {
	case elements > MostElements:
		return &LimitError{What: fmt.Sprintf("a reply of %s elements", number(elements)), Limit: fmt.Sprint(MostElements)}
	case bytes > MostBytes:
		return &LimitError{What: fmt.Sprintf("a reply of %s bytes", number(bytes)), Limit: "1 GiB"}
	}
	return nil
}

// Depth checks how deeply arrays are nested.
func Depth(levels int) error {
	if levels > MostDepth {
		return &LimitError{What: fmt.Sprintf("arrays in arrays, %d levels deep", levels), Limit: fmt.Sprint(MostDepth)}
	}
	return nil
}

// number returns a number as text for a message. The largest int becomes "more than" a number, because it also stands for all
// numbers that are too long for an int.
func number(n int) string {
	if n == math.MaxInt {
		return fmt.Sprintf("more than %d", n-1)
	}
	return fmt.Sprint(n)
}

// Size reads the number of a header. A number that is too long for an int becomes the largest int. It returns false if the text is no
// number.
func Size(digits []byte) (n int, ok bool) {
	if string(digits) == "-1" {
		return -1, true
	}
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		if n > (math.MaxInt-9)/10 {
			n = math.MaxInt
			continue
		}
		n = n*10 + int(c-'0')
	}
	return n, len(digits) > 0
}

// At adds the name of the server to an error of this package. It does not change other errors.
func At(err error, server string) error {
	excess, ok := errors.AsType[*LimitError](err)
	if !ok || excess.Server != "" {
		return err
	}
	named := *excess
	named.Server = server
	return &named
}

// Package headers bounds the replies of a Redis before anything allocates memory for them.
//
// The client library believes each header: of "$1000000000000" it makes a buffer of that size, and a negative or
// huge size panics in a goroutine where nothing can recover. [Conn] stands between the socket and the library. It
// reads the headers as they pass, refuses what exceeds a limit, and holds a long text back until the server has
// sent it: so memory follows the bytes that came, never a promise. Code that parses replies itself asks [Text] and [Total].
package headers

import (
	"errors"
	"fmt"
	"math"
)

// The limits of one reply. Each is above the largest honest reply that baton asks for.
const (
	// MostText is the longest text, in bytes. A Redis takes none that is longer (proto-max-bulk-len).
	MostText = 512 << 20
	// MostBytes is for all texts together. A page aims at 8 MiB, and exceeds that only for one long record, or
	// where records suddenly become long.
	MostBytes = 1 << 30
	// MostElements is for all arrays together. CLUSTER SLOTS has up to 500,000 where each slot stands alone, COMMAND
	// 20,000. Other replies are pages of some ten thousand at most.
	MostElements = 4 << 20
	// MostDepth is how deep arrays may nest. COMMAND has 12 levels.
	MostDepth = 32
	// MostLine is the length of a line: of a status, a refusal, a number.
	MostLine = 64 << 10
)

// Excess is the error for a reply above a limit.
type Excess struct {
	Server string // its address; may be empty
	What   string // the announced size, such as "a text of 9000000000000000000 bytes"
	Limit  string
}

func (e *Excess) Error() string {
	from := "the server"
	if e.Server != "" {
		from = e.Server
	}
	return fmt.Sprintf("%s announces %s, and baton takes at most %s: is it a Redis? If it is one, a value that baton reads is too large: "+
		"make it smaller, or leave its key or field out of the job", from, e.What, e.Limit)
}

// Text checks the announced size of one text.
func Text(size int) error {
	if size > MostText {
		return &Excess{What: fmt.Sprintf("a text of %s bytes", number(size)), Limit: "512 MiB"}
	}
	return nil
}

// Total checks how many elements and how many bytes of texts a reply has so far.
func Total(elements, bytes int) error {
	switch {
	case elements > MostElements:
		return &Excess{What: fmt.Sprintf("a reply of %s elements", number(elements)), Limit: fmt.Sprint(MostElements)}
	case bytes > MostBytes:
		return &Excess{What: fmt.Sprintf("a reply of %s bytes", number(bytes)), Limit: "1 GiB"}
	}
	return nil
}

// Depth checks how deep arrays nest.
func Depth(levels int) error {
	if levels > MostDepth {
		return &Excess{What: fmt.Sprintf("arrays in arrays, %d levels deep", levels), Limit: fmt.Sprint(MostDepth)}
	}
	return nil
}

// number is a number for a message. Size makes no difference between numbers that are too long for an int.
func number(n int) string {
	if n == math.MaxInt {
		return fmt.Sprintf("more than %d", n-1)
	}
	return fmt.Sprint(n)
}

// Size reads the number of a header. A number that is too long for an int is the largest one. False: it is no number.
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

// At adds the server to an error of this package. Others stay as they are.
func At(err error, server string) error {
	excess, ok := errors.AsType[*Excess](err)
	if !ok || excess.Server != "" {
		return err
	}
	named := *excess
	named.Server = server
	return &named
}

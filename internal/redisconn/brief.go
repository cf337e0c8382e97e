package redisconn

import (
	"bufio"
	"fmt"
	"io"
	"strconv"

	"github.com/gomodule/redigo/redis"

	"baton/internal/redisconn/headers"
)

// briefText is the maximum length in bytes of the texts that baton keeps in a brief reply (see Question.Brief). The ids of stream
// entries are shorter.
const briefText = 128

// OmittedSize replaces a text that is too long to be kept in a brief reply. Its value is the size of that text in bytes.
type OmittedSize int

// readBrief reads any reply. A number becomes an int64, a refusal becomes a redis.Error, and an array becomes a []any. A status or a
// short text becomes a string, and a long text an [OmittedSize].
func readBrief(r *bufio.Reader) (any, error) {
	elements := 0
	return readNested(r, 0, &elements)
}

// readNested reads a reply that is nested in arrays. The argument depth is the number of these arrays. The argument elements counts
// the elements of the whole reply.
func readNested(r *bufio.Reader, depth int, elements *int) (any, error) {
	kind, rest, err := readLine(r)
	if err != nil {
		return nil, err
	}
	n, notNumber := strconv.Atoi(string(rest))
	switch {
	case kind == '+':
		return string(rest), nil
	case kind == '-':
		return redis.Error(rest), nil
	case notNumber != nil:
	case kind == ':':
		return int64(n), nil
	case kind == '$':
		return readShort(r, n)
	case kind == '*' && n >= 0:
		if *elements += min(n, headers.MostElements+1); *elements > headers.MostElements {
			return nil, headers.Total(max(n, *elements), 0)
		}
		if err := headers.Depth(depth + 1); err != nil {
			return nil, err
		}
		all := make([]any, 0, min(n, 64))
		for range n {
			element, err := readNested(r, depth+1, elements)
			if err != nil {
				return nil, err
			}
			all = append(all, element)
		}
		return all, nil
	case kind == '*':
		return nil, nil //nolint:nilnil // the reply says so
	}
	return nil, fmt.Errorf("%w: %q", errNotTexts, string(kind)+string(rest))
}

// readShort reads a text of n bytes. If the text is long, it reads only its size.
func readShort(r *bufio.Reader, n int) (text any, err error) {
	switch {
	case n < 0:
		return nil, nil //nolint:nilnil // there is none
	case n > headers.MostText:
		return nil, headers.Text(n)
	case n > briefText:
		text = OmittedSize(n)
		_, err = r.Discard(n)
	default:
		short := make([]byte, n)
		_, err = io.ReadFull(r, short)
		text = string(short)
	}
	if err == nil {
		_, err = r.Discard(2) // the end of the line
	}
	return text, noEOF(err)
}

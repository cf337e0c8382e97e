package parts

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sort"
	"strings"

	"baton/internal/flush/source/idlist"
)

// Dealing tells the part of a field. It is a format: a stage may survive an upgrade.
//
// By hash, the part is FNV-1a (64 bit) of the field's bytes modulo the number of parts. By order, a part has the fields from its own
// first one up to the first one of the next part, so that each transaction writes neighbours.
type Dealing struct {
	of       int
	integers bool
	first    []string // fields, of all parts but the first
}

// The first letter of the text beside a stage: by number or by bytes; then the first field of each part except the first follows, each
// after its length. By hash nothing follows.
const byNumber, byBytes, byHash = "n", "b", "h"

// mostEnds bounds the length of the ends, in bytes: they are sent to Redis and kept there.
const mostEnds = 1 << 20

// ByHash deals out fields to that many parts.
func ByHash(of int) Dealing { return Dealing{of: of} }

// Ordered reads from the scripts' text how a stage must be cut: "40 by order of 200000" fields.
func Ordered(text string) (size int, ok bool) {
	n, err := fmt.Sscanf(text, "%d by order of %d", new(int), &size)
	return size, err == nil && n == 2
}

// Of reads the text that Whole has made, for a stage with that many parts.
func Of(ends string, of int) (Dealing, error) {
	d := Dealing{of: of, integers: strings.HasPrefix(ends, byNumber)}
	if ends == byHash {
		return d, nil
	}
	if !d.integers && !strings.HasPrefix(ends, byBytes) {
		return d, errBroken
	}
	for left := []byte(ends[1:]); len(left) > 0; {
		size, long := binary.Uvarint(left)
		if long <= 0 || size > uint64(len(left)-long) {
			return d, errBroken
		}
		d.first = append(d.first, string(left[long:long+int(size)]))
		left = left[long+int(size):]
	}
	if len(d.first) != of-1 {
		return d, errBroken
	}
	return d, nil
}

var errBroken = errors.New("the ends of its parts are not as baton writes them")

// endsOf cuts sorted fields into that many parts of the same size. By hash, if the ends would be too long.
func endsOf(fields *idlist.List, of int) string {
	ends := []byte(byBytes)
	if fields.Integers() {
		ends = []byte(byNumber)
	}
	for part := 1; part < of; part++ {
		from, _ := share(fields.Len(), part, of)
		first := fields.At(from)
		ends = append(binary.AppendUvarint(ends, uint64(len(first))), first...)
		if len(ends) > mostEnds {
			return byHash
		}
	}
	return string(ends)
}

// share is the range of a part among n fields.
func share(n, part, of int) (from, to int) { return part * n / of, (part + 1) * n / of }

// Ordered reports whether fields are dealt out by their order.
func (d Dealing) Ordered() bool { return d.first != nil }

func (d Dealing) part(field []byte) int {
	if d.first == nil {
		return idlist.Part(field, d.of)
	}
	return sort.Search(len(d.first), func(i int) bool { return idlist.Compare(field, d.first[i], d.integers) < 0 })
}

package parts

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sort"
	"strings"

	"baton/internal/flush/source/idlist"
)

// Partitioner assigns each field to a part. Its rule is a stored format, because a stage may outlive an upgrade.
//
// By hash, the number of the part is FNV-1a (64 bit) of the field's bytes modulo the number of parts. By order, a part has the fields from
// its first field up to, but not including, the first field of the next part, so that each transaction writes neighbouring rows.
type Partitioner struct {
	of       int
	integers bool
	first    []string // the first field of each part except the first part
}

// These are the first letters of the text that is stored next to a stage. They mean that the stage is cut by order of numbers, by order of
// bytes, or by hash. After byNumber or byBytes, the text contains the first field of each part except the first part, each field after its
// length. After byHash, the text contains nothing more.
const byNumber, byBytes, byHash = "n", "b", "h"

// mostEnds is the maximum length in bytes of the text with the ends of the parts, because the text is sent to Redis and stored there.
const mostEnds = 1 << 20

// ByHash returns a Partitioner that distributes fields over this number of parts by their hash.
func ByHash(of int) Partitioner { return Partitioner{of: of} }

// Ordered parses the text in which a script says that a stage must be cut by order, such as "40 by order of 200000" for 40 parts of 200,000
// fields. ok is false for any other text.
func Ordered(text string) (size int, ok bool) {
	n, err := fmt.Sscanf(text, "%d by order of %d", new(int), &size)
	return size, err == nil && n == 2
}

// Of parses the text that Whole made for a stage. The second argument is the number of parts.
func Of(ends string, of int) (Partitioner, error) {
	d := Partitioner{of: of, integers: strings.HasPrefix(ends, byNumber)}
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

var errBroken = errors.New("the ends of the parts are not in the format that baton writes")

// endsOf cuts sorted fields into this number of parts of equal size, and returns the text that Of parses. If the text would be too long,
// endsOf chooses the cut by hash.
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

// share returns the index of the first of the sorted fields that belong to a part, and the index after the last one. The first argument is
// the number of fields, and the last argument is the number of parts.
func share(n, part, of int) (from, to int) { return part * n / of, (part + 1) * n / of }

// Ordered reports whether fields are assigned by their order.
func (d Partitioner) Ordered() bool { return d.first != nil }

func (d Partitioner) part(field []byte) int {
	if d.first == nil {
		return idlist.Part(field, d.of)
	}
	return sort.Search(len(d.first), func(i int) bool { return idlist.Compare(field, d.first[i], d.integers) < 0 })
}

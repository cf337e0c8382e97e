package flush

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/shopspring/decimal"

	"baton/internal/flush/row"
)

// A mark is the flushed total of a counter, in plain decimal digits, and a hash of the source's value if that was refused:
//
//	17
//	17 refused 9f86d081884c7d65
//	 refused 9f86d081884c7d65
const refusedMark = " refused "

// maxTotal is the most characters of a total: every database can store that many.
const maxTotal = 200

// parseMark parses a mark; known is "" for a counter without one.
func parseMark(mark string) (known, refused string, err error) {
	known, refused, _ = strings.Cut(mark, refusedMark)
	if known == "" {
		return "", refused, nil
	}
	if known, err = readTotal(known); err != nil {
		return "", "", fmt.Errorf("%w: was it changed by hand? Correct it in the table of positions, or delete its row "+
			"to have the "+
			"counter added from zero", err)
	}
	return known, refused, nil
}

// readTotal parses a decimal number into its canonical form.
func readTotal(s string) (string, error) {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return strconv.FormatInt(n, 10), nil
	}
	plain, err := row.PlainDecimal(s)
	if err != nil {
		return "", err
	}
	if len(plain) > maxTotal {
		return "", fmt.Errorf("%s has more than %d digits", row.Quote(s), maxTotal)
	}
	return plain, nil
}

// subtract is total − known, exactly, and its sign. Both are in canonical form.
func subtract(total, known string) (difference string, sign int) {
	if total == known {
		return "0", 0
	}
	a, errA := strconv.ParseInt(total, 10, 64)
	b, errB := strconv.ParseInt(known, 10, 64)
	if errA == nil && errB == nil && (b >= 0 && a >= math.MinInt64+b || b < 0 && a <= math.MaxInt64+b) {
		sign = 1
		if a < b {
			sign = -1
		}
		return strconv.FormatInt(a-b, 10), sign
	}
	// Neither has an exponent: the digits of the result are as bounded as theirs.
	d := decimal.RequireFromString(total).Sub(decimal.RequireFromString(known))
	return d.String(), d.Sign()
}

package flush

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/shopspring/decimal"

	"baton/internal/flush/row"
)

// A mark is the flushed total of a counter, in plain decimal digits. If the database or baton has refused the counter's value, the mark
// also contains a hash of that value:
//
//	17
//	17 refused 9f86d081884c7d65
//	 refused 9f86d081884c7d65
const refusedMark = " refused "

// maxTotal is the maximum number of characters of a total. Every database can store a number of that length.
const maxTotal = 200

// parseMark parses a mark. It returns known = "" for a counter without a mark.
func parseMark(mark string) (known, refused string, err error) {
	known, refused, _ = strings.Cut(mark, refusedMark)
	if known == "" {
		return "", refused, nil
	}
	if known, err = readTotal(known); err != nil {
		return "", "", fmt.Errorf("the counter's mark: %w: was the mark changed by hand? Correct it in baton's table of marks "+
			"(baton_mark). If you delete the mark's row there, baton adds the counter from zero", err)
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

// subtract returns the exact difference total − known, and the sign of the difference. Both numbers must be in canonical form.
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
	// Neither number has an exponent, so the result has hardly more digits than the numbers.
	d := decimal.RequireFromString(total).Sub(decimal.RequireFromString(known))
	return d.String(), d.Sign()
}

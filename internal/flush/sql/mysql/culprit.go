package mysql

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"sync/atomic"

	"github.com/go-sql-driver/mysql"

	"baton/internal/flush/row"
	"baton/internal/flush/sql"
	"baton/internal/flush/sql/stdsql"
)

// MariaDB 10.7 and later number the row that an error is about (ROW_NUMBER). A server may not number rows, or its numbers may belong to
// statements of a trigger. In these cases the statement itself records its progress, which takes several times as long. MySQL supports
// neither of the two ways, so on MySQL the text that counted returns is only a parameter.

// counted returns the SQL text for the first parameter of a row. The text makes the statement record the position of the row.
func counted(row int) string { return fmt.Sprintf("/*M! IF(@baton_row := %d, */?/*M! , NULL) */", row) }

const (
	// After maxBadRowNumbers successive errors about the first row, baton no longer trusts the row numbers of the server. Such an error
	// counts only if its statement has at least doubtedRows rows. An error about the first of many rows is more likely about the first row
	// of a trigger's statement.
	maxBadRowNumbers, doubtedRows = 5, 16
	// notUnderstood is the error of a server that does not number rows.
	notUnderstood = 1064
)

// badRowNumbers counts the doubtful row numbers that a server has given for refused rows.
type badRowNumbers struct{ n atomic.Int32 }

func (d *badRowNumbers) counts() bool { return d.n.Load() >= maxBadRowNumbers }

// weigh decides whether a row number of the server is doubtful, and counts doubtful numbers. The number is 0 if the server gives none. The
// argument rows is the number of rows in the statement.
func (d *badRowNumbers) weigh(number, rows int) {
	switch {
	case d.counts(): // final for as long as the plan is used
	case number == 0:
		d.n.Store(maxBadRowNumbers)
	case number > 1:
		d.n.Store(0)
	case rows >= doubtedRows:
		d.n.Add(1)
	}
}

// Culprit returns the position of the row that made the database refuse a statement of several rows, or a negative number if the row is
// unknown. The position may be wrong, because it may belong to a trigger's statement or to an earlier statement. A wrong position does no
// harm: the caller tries the row at that position alone, and the database accepts that row.
func (w *writer) Culprit(ctx context.Context, s *stdsql.Session, p *row.Plan, cause error, rows int) (int, error) {
	n := 0
	server, _ := errors.AsType[*mysql.MySQLError](cause)
	switch {
	case server == nil || server.Number == 1153 || server.Number == 1105 || unheld(cause): // the statement has not begun
	case atRow.MatchString(server.Message):
		n, _ = strconv.Atoi(atRow.FindStringSubmatch(server.Message)[1]) // a position of 0 is not a row
	case !w.counts(p):
		var err error
		if n, err = w.number(ctx, s); err != nil {
			return 0, err
		}
		w.plans.Get(p, newPlan).badRowNumbers.weigh(n, rows)
	case s.Guarded:
		var err error
		if n, err = noted(ctx, s); err != nil {
			return 0, err
		}
	}
	if n > rows {
		n = 0
	}
	return n - 1, nil
}

// counts reports whether the statements of a plan that may be refused record the position of their rows.
func (w *writer) counts(p *row.Plan) bool {
	return w.numberless.Load() || w.plans.Get(p, newPlan).badRowNumbers.counts()
}

// number returns the server's number of the row that the last error is about, or 0 if the server has no number.
func (w *writer) number(ctx context.Context, s *stdsql.Session) (int, error) {
	_, err := s.Exec(ctx, s.Parent.Queries["note_refused_row"], nil)
	if errorNumber(err) == notUnderstood {
		w.numberless.Store(true)
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return noted(ctx, s)
}

// noted returns the position of a row that the last statement has recorded.
func noted(ctx context.Context, s *stdsql.Session) (n int, err error) {
	err = s.Read(ctx, s.Parent.Queries["noted_row"], nil, func(row []any) error {
		n, _ = strconv.Atoi(sql.Text(row[0]))
		return nil
	})
	return n, err
}

var atRow = regexp.MustCompile(`at row (\d+)$`)

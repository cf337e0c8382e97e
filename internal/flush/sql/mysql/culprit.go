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

// MariaDB 10.7 and later numbers the row that an error is about (ROW_NUMBER). Where it does not, or where a trigger
// runs statements with rows of their own, the statement itself notes how far it has come, which takes
// several times as long. To MySQL, which has neither, that is a mere parameter.

// counted is the first parameter of a row. With it the statement notes its position.
func counted(row int) string { return fmt.Sprintf("/*M! IF(@baton_row := %d, */?/*M! , NULL) */", row) }

const (
	// After mostDoubts successive errors about the first row the server's numbers are no longer
	// trusted. Only errors of at least doubtedRows rows count: they are more likely about the first
	// row of a trigger's statement.
	mostDoubts, doubtedRows = 5, 16
	// notUnderstood is the error of a server that does not number rows.
	notUnderstood = 1064
)

// doubts about the numbers of rows that are refused.
type doubts struct{ n atomic.Int32 }

func (d *doubts) counts() bool { return d.n.Load() >= mostDoubts }

// weigh takes the server's number for one of the rows; 0 if the server gives none.
func (d *doubts) weigh(number, rows int) {
	switch {
	case d.counts(): // for as long as the plan is in use
	case number == 0:
		d.n.Store(mostDoubts)
	case number > 1:
		d.n.Store(0)
	case rows >= doubtedRows:
		d.n.Add(1)
	}
}

// Culprit is the position of the row that made the database refuse a statement of several rows; negative
// if unknown. The position may be wrong: it may belong to a trigger's statement, or be left from an earlier
// statement. The caller then tries the innocent row alone, and writes it.
func (w *writer) Culprit(ctx context.Context, s *stdsql.Session, p *row.Plan, cause error, rows int) (int, error) {
	n := 0
	server, _ := errors.AsType[*mysql.MySQLError](cause)
	switch {
	case server == nil || server.Number == 1153 || server.Number == 1105 || unheld(cause): // it has not begun
	case atRow.MatchString(server.Message):
		n, _ = strconv.Atoi(atRow.FindStringSubmatch(server.Message)[1]) // 0 is no row
	case !w.counts(p):
		var err error
		if n, err = w.number(ctx, s); err != nil {
			return 0, err
		}
		w.plans.Get(p, newPlan).doubts.weigh(n, rows)
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

// counts reports whether statements that may be refused note their position.
func (w *writer) counts(p *row.Plan) bool {
	return w.numberless.Load() || w.plans.Get(p, newPlan).doubts.counts()
}

// number is the server's number of the row that the last error is about; 0 if it has none.
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

// noted is the row that was noted last.
func noted(ctx context.Context, s *stdsql.Session) (n int, err error) {
	err = s.Read(ctx, s.Parent.Queries["noted_row"], nil, func(row []any) error {
		n, _ = strconv.Atoi(sql.Text(row[0]))
		return nil
	})
	return n, err
}

var atRow = regexp.MustCompile(`at row (\d+)$`)

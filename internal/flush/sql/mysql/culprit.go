package mysql

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"

	"github.com/go-sql-driver/mysql"

	"baton/internal/flush/sql"
	"baton/internal/flush/sql/stdsql"
)

// counted is the first parameter of a row by which MariaDB notes how far it has come: of most
// errors it does not say which row they are about. To MySQL, which wants no such assignments any
// more, it is a mere parameter.
func counted(row int) string { return fmt.Sprintf("/*M! IF(@baton_row := %d, */?/*M! , NULL) */", row) }

// culprit is the position of the row for which a statement of so many rows was refused; negative
// if unknown. A statement that was refused before its first row leaves the variable as an earlier one
// has set it. That names a row that is not at fault, which is then tried by itself, and written.
func culprit(ctx context.Context, s *stdsql.Session, cause error, rows int) (int, error) {
	n := 0
	server, _ := errors.AsType[*mysql.MySQLError](cause)
	switch {
	case server == nil || server.Number == 1153 || server.Number == 1105: // it has not begun
	case atRow.MatchString(server.Message):
		n, _ = strconv.Atoi(atRow.FindStringSubmatch(server.Message)[1]) // 0 is no row
	case s.Counting:
		err := s.Read(ctx, s.Parent.Queries["begun_row"], nil, func(row []any) error {
			n, _ = strconv.Atoi(sql.Text(row[0]))
			return nil
		})
		if err != nil {
			return 0, err
		}
	}
	if n > rows {
		n = 0
	}
	return n - 1, nil
}

var atRow = regexp.MustCompile(`at row (\d+)$`)

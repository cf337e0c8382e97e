package postgres

import (
	"context"
	"encoding/hex"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

func (t *session) Read(ctx context.Context, text string, args []any, each func(row []any) error) error {
	ctx, cancel := context.WithTimeout(ctx, t.db.limits.Trip)
	defer cancel()
	statements := []statement{newStatement(text, args)}
	if t.pg.TxStatus() == 'I' { // all statements until a Sync are one transaction
		statements = []statement{named(t.db.Settings()), statements[0]}
	}
	if err := t.prepare(ctx, statements); err != nil {
		return err
	}
	pipe := t.pg.StartPipeline(ctx)
	t.send(pipe, statements...)
	err := pipe.Sync()
	if err == nil && len(statements) > 1 {
		_, err = answer(pipe)
	}
	if err == nil {
		err = eachRow(pipe, each)
	}
	return t.lost(errors.Join(err, pipe.Close()))
}

// eachRow calls the function each for every row of one result.
func eachRow(pipe *pgconn.Pipeline, each func(row []any) error) error {
	reader, err := result(pipe)
	if err != nil {
		return err
	}
	var failed error
	for failed == nil && reader.NextRow() {
		row := make([]any, len(reader.Values()))
		for i, v := range reader.Values() {
			if row[i], failed = readValue(v, reader.FieldDescriptions()[i].DataTypeOID); failed != nil {
				break
			}
		}
		if failed == nil {
			failed = each(row)
		}
	}
	_, err = reader.Close()
	return errors.Join(failed, err)
}

// readValue converts the text of a value to nil for NULL, to bytes, or to a string.
func readValue(v []byte, oid uint32) (any, error) {
	switch {
	case v == nil:
		return nil, nil
	case oid == pgtype.ByteaOID:
		return hex.DecodeString(strings.TrimPrefix(string(v), `\x`))
	}
	return string(v), nil
}

// textArray returns an array in PostgreSQL's text form.
func textArray(elements []string) string {
	quoted := make([]string, len(elements))
	for i, e := range elements {
		quoted[i] = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(e) + `"`
	}
	return "{" + strings.Join(quoted, ",") + "}"
}

package api

import (
	"net/http"
	"strconv"

	"baton/internal/operate"
)

func (a *API) askRows(r *http.Request) (any, error) {
	n, err := numberParam(r, "n", 50, mostLetters)
	if err != nil {
		return nil, err
	}
	q := r.URL.Query()
	rows, err := a.Node.DeletedRows(r.Context(), operate.RowFilter{Job: q.Get("job"), Database: q.Get("database"), Text: q.Get("text")}, n)
	if len(rows) == 0 && err != nil {
		return nil, err
	}
	return rowsReply{append([]operate.DeletedRow{}, rows...), errorText(err)}, nil
}

func (a *API) askRow(r *http.Request) (any, error) {
	id, err := rowID(r)
	if err != nil {
		return nil, err
	}
	rows, err := a.Node.DeletedRows(r.Context(), operate.RowFilter{ID: id, Database: r.URL.Query().Get("database")}, 1)
	if err != nil {
		return nil, err
	}
	return rows[0], nil
}

// rowID returns the id of a deleted row from the path.
func rowID(r *http.Request) (int64, error) {
	id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
	if err != nil || id < 1 {
		return 0, badRequest("%q is not the id of a deleted row: see %s/deleted-rows", clip(r.PathValue("id")), Root)
	}
	return id, nil
}

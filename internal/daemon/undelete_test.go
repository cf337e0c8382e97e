package daemon

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"baton/internal/operate"
)

// The API lists the rows that a job has deleted, and puts one back under the rules of the command.
func TestTheAPIPutsADeletedRowBack(t *testing.T) {
	t.Parallel()
	lab, shop, _ := captureLab(t)
	l := &apiLab{jobLab: lab, socket: filepath.Join(t.TempDir(), "admin.sock")}
	l.config.Jobs[0].Flush.To.KeepDeleted = time.Hour
	l.config.HTTP.TokenFile, l.config.HTTP.AdminSocket = writeFile(t, "token", testToken+"\n"), l.socket
	shop.Do("SET", "articles:1", 1)
	l.node = l.start()
	code, described := l.ask(http.MethodGet, "/api/v1/openapi.json", "", "")
	if err := json.Unmarshal(described, &l.doc); err != nil || code != http.StatusOK {
		t.Fatalf("%d %v", code, err)
	}
	l.awaitRows("[[1 1]]")
	shop.Do("DEL", "articles:1")
	l.awaitRows("[]")

	var list struct{ Rows []operate.DeletedRow }
	if err := json.Unmarshal(l.described("GET", "/deleted-rows", "/deleted-rows?job=articles&text=views&n=5", 200, ""), &list); err != nil ||
		len(list.Rows) != 1 || list.Rows[0].Row != `{"id":1,"views":1}` || list.Rows[0].Why != "missing" {
		t.Fatalf("%+v, %v", list, err)
	}
	id := fmt.Sprint(list.Rows[0].ID)
	route, undelete := "/deleted-rows/{id}/undelete", "/deleted-rows/"+id+"/undelete"
	for path, code := range map[string]int{id: 200, id + "?database=main": 200, "99": 404, "x": 400} {
		l.described("GET", "/deleted-rows/{id}", "/deleted-rows/"+path, code, "")
	}
	l.described("GET", "/deleted-rows", "/deleted-rows?database=none", 422, "")
	for path, method := range map[string]string{"/deleted-rows": http.MethodGet, "/deleted-rows/" + id: http.MethodGet, undelete: http.MethodPost} {
		if code, text := l.ask(method, "/api/v1"+path, "", ""); code != 401 {
			t.Errorf("%s without a token: %d %s", path, code, text)
		}
	}
	l.described("POST", route, "/deleted-rows/99/undelete", 404, "")
	if text := l.described("POST", route, undelete, 409, ""); !strings.Contains(string(text), "Redis has no key") {
		t.Errorf("%s", text)
	}
	shop.Do("SET", "articles:1", 2)
	l.awaitRows("[[1 2]]")
	c := l.client("unix://"+l.socket, "")
	order := operate.Order{Kind: operate.KindUndelete, Row: list.Rows[0].ID, By: "ann", Reason: "a mistake"}
	if _, err := c.to.Do(t.Context(), order); err == nil || !strings.Contains(err.Error(), "has a row of that key") {
		t.Errorf("over a row: %v", err)
	}
	l.db.Exec(t, "DELETE FROM articles")
	out, err := c.to.Do(t.Context(), order)
	if err != nil || out.Code != operate.CodeDone || out.DeletedRow == nil || out.DeletedRow.Table != "articles" {
		t.Errorf("%+v, %v", out, err)
	}
	l.awaitRows("[[1 1]]")
	if e := l.event("row_undeleted"); e.Reason != "deleted row "+id+" of job articles is in table articles again, put back by ann via the admin socket: a mistake" {
		t.Errorf("the event history has %+v", e)
	}
	if n := l.node.logs.FilterMessage("an order was carried out").FilterField(zap.Int64("row", order.Row)).Len(); n != 1 {
		t.Errorf("the log has the order %d times", n)
	}
	rows, err := c.to.DeletedRows(t.Context(), operate.RowFilter{ID: order.Row}, 1)
	if err != nil || rows[0].PutBackAt.IsZero() || !rows[0].KeepUntil.Equal(rows[0].At.Add(time.Hour)) {
		t.Errorf("afterwards: %+v, %v", rows, err)
	}
	if _, err := c.to.DeletedRows(t.Context(), operate.RowFilter{ID: order.Row + 1}, 1); !errors.Is(err, operate.ErrNoRow) {
		t.Errorf("another row: %v", err)
	}
}

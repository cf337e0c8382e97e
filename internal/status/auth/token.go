package auth

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"os"
	"time"

	"go.uber.org/zap"

	"baton/internal/operate"
)

// tokenFile is a token in a file. The token is read again when the file has changed. The mutex of Auth protects the fields.
type tokenFile struct {
	setting string // the setting that names the file
	path    string // "" means that there is no such token

	looked fileState // the state of the file at the last read
	sum    [sha256.Size]byte
	broken error // the error of the last read
}

// fileState identifies a version of a file's content.
type fileState struct {
	at   time.Time
	size int64
	info os.FileInfo
}

// CheckTokens checks the tokens in the files of http.token_file and http.read_token_file. The path "" means that there is no such
// file. The two tokens must differ, because otherwise a caller with the read-only token could give orders.
func CheckTokens(orders, reads string) error {
	seen := map[[sha256.Size]byte]bool{}
	for _, f := range []tokenFile{{setting: "http.token_file", path: orders}, {setting: "http.read_token_file", path: reads}} {
		if f.path == "" {
			continue
		}
		sum, err := readToken(f.setting, f.path)
		if err != nil {
			return err
		}
		if seen[sum] {
			return fmt.Errorf("%s: %s holds the token of http.token_file, and that token allows orders: use another token",
				f.setting, f.path)
		}
		seen[sum] = true
	}
	return nil
}

func readToken(setting, file string) (sum [sha256.Size]byte, err error) {
	token, err := operate.ReadToken(file)
	if err != nil {
		return sum, fmt.Errorf("%s: %w", setting, err)
	}
	return sha256.Sum256([]byte(token)), nil
}

// refresh reads the token again if its file has changed. It reports whether the token has changed.
func (f *tokenFile) refresh(log *zap.Logger) (changed bool) {
	if f.path == "" {
		return false
	}
	info, err := os.Stat(f.path)
	if err == nil && f.looked.info != nil && os.SameFile(info, f.looked.info) && info.ModTime().Equal(f.looked.at) &&
		info.Size() == f.looked.size {
		return false
	}
	var sum [sha256.Size]byte
	if err == nil {
		sum, err = readToken(f.setting, f.path)
	}
	if err != nil {
		if f.broken == nil {
			log.Error("the token file cannot be read: requests with a token are refused until it can be read", zap.Error(err))
		}
		f.broken, f.looked, f.sum = err, fileState{}, [sha256.Size]byte{}
		return true
	}
	changed = sum != f.sum
	f.broken, f.sum, f.looked = nil, sum, fileState{at: info.ModTime(), size: info.Size(), info: info}
	return changed
}

// is reports whether the argument sum is the checksum of the file's token. It compares in constant time.
func (f *tokenFile) is(sum [sha256.Size]byte) bool {
	return subtle.ConstantTimeCompare(sum[:], f.sum[:]) == 1 && f.path != "" && f.broken == nil
}

// refresh reads the tokens again if their files have changed. It ends the sessions that began with a replaced token. The caller holds a.mu.
func (a *Auth) refresh() {
	orders, reads := a.orders.refresh(a.log), a.reads.refresh(a.log)
	for id, s := range a.sessions {
		if orders && !s.reader || reads && s.reader {
			delete(a.sessions, id)
		}
	}
}

// matches reports whether a token is the token for orders, or the read-only token.
func (a *Auth) matches(token string) (orders, reads bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.refresh()
	sum := sha256.Sum256([]byte(token))
	return a.orders.is(sum), a.reads.is(sum)
}

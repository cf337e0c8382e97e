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

// tokenFile is a token, read again when its file changes. Auth's lock guards it.
type tokenFile struct {
	setting string // the setting that names the file
	path    string // "": no such token

	looked fileState // the file at the last read
	sum    [sha256.Size]byte
	broken error // the error of the last read
}

// fileState identifies a version of a file.
type fileState struct {
	at   time.Time
	size int64
	info os.FileInfo
}

// CheckTokens checks the tokens in the files of http.token_file and http.read_token_file; "": no
// file. The two must differ: otherwise a reader could give orders.
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
			return fmt.Errorf("%s: %s holds the token of http.token_file, so its reader can give orders: want another token",
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

// refresh reads the token again if its file has changed, and reports whether the token is a different one now.
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
			log.Error("the token cannot be read: requests with a token are refused until it can", zap.Error(err))
		}
		f.broken, f.looked, f.sum = err, fileState{}, [sha256.Size]byte{}
		return true
	}
	changed = sum != f.sum
	f.broken, f.sum, f.looked = nil, sum, fileState{at: info.ModTime(), size: info.Size(), info: info}
	return changed
}

// is compares a token in constant time.
func (f *tokenFile) is(sum [sha256.Size]byte) bool {
	return subtle.ConstantTimeCompare(sum[:], f.sum[:]) == 1 && f.path != "" && f.broken == nil
}

// refresh reads the tokens again if their files have changed. It ends the sessions of a replaced token.
// The caller holds a.mu.
func (a *Auth) refresh() {
	orders, reads := a.orders.refresh(a.log), a.reads.refresh(a.log)
	for id, s := range a.sessions {
		if orders && !s.reader || reads && s.reader {
			delete(a.sessions, id)
		}
	}
}

// matches reports which of the two tokens this is: the one for orders, or the read-only one.
func (a *Auth) matches(token string) (orders, reads bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.refresh()
	sum := sha256.Sum256([]byte(token))
	return a.orders.is(sum), a.reads.is(sum)
}

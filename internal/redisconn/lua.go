package redisconn

import (
	"io/fs"
	"strings"
)

// Lua joins the texts of script files: the name "lock_lib" stands for lock_lib.lua. Programs call it only at start-up; it panics if a
// file is missing.
func Lua(files fs.FS, names ...string) string {
	var text strings.Builder
	for _, name := range names {
		part, err := fs.ReadFile(files, name+".lua")
		if err != nil {
			panic(err)
		}
		text.Write(part)
	}
	return text.String()
}

package config

import "baton/internal/flush/source/spec"

// Kind returns the kind of the source. It returns the zero Kind if the type is unknown.
func (f From) Kind() spec.Kind {
	kind, _ := spec.Find(f.Type, f.Key, f.Mode == ModeWatermark)
	return kind
}

// option is a setting of a flush that only some kinds of sources have.
type option struct {
	path string
	set  bool
	word *string // nil if the default is no word
}

func (f *Flush) options() []option {
	from := &f.From
	word := func(path string, word *string) option { return option{path, *word != "", word} }
	return []option{
		word(".from.changed", &from.Changed), word(".from.mode", &from.Mode), word(".from.on_decrease", &from.OnDecrease),
		word(".from.on_missing", &from.OnMissing), word(".from.on_flush", &from.OnFlush),
		word(".from.on_gap", &from.OnGap), word(".from.start", &from.Start),
		{".from.retain", from.Retain != 0, nil}, word(".from.value", &from.Value), word(".from.vanished", &from.Vanished),
		{".from.max_pct", from.MaxPct != 0, nil}, word(".to.generation", &f.To.Generation),
		word(".to.adopt", &f.To.Adopt), {".to.keep_deleted", f.To.KeepDeleted != 0, nil},
		{".to.delete_when", len(f.To.DeleteWhen) > 0, nil}, {".verify", f.Verify != Verify{}, nil},
	}
}

// options reports the settings of a flush that its kind of source does not have.
func (v *validator) options(path string, f Flush) {
	kind := f.From.Kind()
	for _, o := range f.options() {
		switch {
		case !o.set || kind.Takes(o.path) || kind.Type == "":
		case kind.Lacks[o.path] != "":
			v.fail(path+o.path, "%s", kind.Lacks[o.path])
		default:
			v.fail(path+o.path, "only for %s; remove it", orList(spec.TypesTaking(o.path)))
		}
	}
}

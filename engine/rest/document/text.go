package document

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	badEscape    = "Invalid escape character in string."
	badHex       = "Incorrect hex digit after \\u escape in string."
	badSurrogate = "The surrogate pair in string is invalid."
	escapes      = `"\/bfnrt`
	escaped      = "\"\\/\b\f\n\r\t"
)

// escape checks the escape with which text begins. It returns its length, or the mistake.
func escape(text []byte) (n int, wrong string) {
	if len(text) < 2 {
		return 0, badEscape
	}
	if text[1] != 'u' {
		if bytes.IndexByte([]byte(escapes), text[1]) < 0 {
			return 0, badEscape
		}
		return 2, ""
	}
	first, ok := hex4(text[2:])
	if !ok {
		return 0, badHex
	}
	if !utf16.IsSurrogate(first) {
		return 6, ""
	}
	if !bytes.HasPrefix(text[6:], []byte(`\u`)) {
		return 0, badSurrogate
	}
	second, ok := hex4(text[8:])
	switch {
	case !ok:
		return 0, badHex
	case utf16.DecodeRune(first, second) == utf8.RuneError:
		return 0, badSurrogate
	}
	return 12, ""
}

func hex4(text []byte) (rune, bool) {
	if len(text) < 4 {
		return 0, false
	}
	var r rune
	for _, c := range text[:4] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// unquote returns the value of a checked string. Without escapes this is raw itself.
func unquote(raw []byte, hasEscapes bool) []byte {
	if !hasEscapes {
		return raw
	}
	return appendUnescaped(make([]byte, 0, len(raw)), raw)
}

// appendUnescaped appends a checked string, without its escapes, to dst.
func appendUnescaped(dst, raw []byte) []byte {
	for {
		i := bytes.IndexByte(raw, '\\')
		if i < 0 {
			return append(dst, raw...)
		}
		dst = append(dst, raw[:i]...)
		raw = raw[i:]
		n, _ := escape(raw)
		switch n {
		case 2:
			dst = append(dst, escaped[bytes.IndexByte([]byte(escapes), raw[1])])
		case 6:
			r, _ := hex4(raw[2:])
			dst = utf8.AppendRune(dst, r)
		case 12:
			first, _ := hex4(raw[2:])
			second, _ := hex4(raw[8:])
			dst = utf8.AppendRune(dst, utf16.DecodeRune(first, second))
		}
		raw = raw[n:]
	}
}

// AppendQuoted writes a JSON string. It passes on bytes that are not valid UTF-8.
func AppendQuoted(dst, text []byte) []byte {
	const hex = "0123456789ABCDEF"
	dst = append(dst, '"')
	plain := 0 // text[plain:i] needs no escape
	for i, c := range text {
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, text[plain:i]...)
		plain = i + 1
		if k := bytes.IndexByte([]byte(escaped), c); k >= 0 {
			dst = append(dst, '\\', escapes[k])
		} else {
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	return append(append(dst, text[plain:]...), '"')
}

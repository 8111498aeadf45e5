package data

import "unicode/utf8"

// The files of a byte-level BPE write each byte as one printable character:
// those that are printable in Latin-1 as themselves, the others, in order, as
// U+0100 and up.
var (
	byteNames [256]rune
	namedByte map[rune]byte
)

func init() {
	namedByte = make(map[rune]byte, 256)
	spare := rune(256)
	for b := range 256 {
		c := rune(b)
		if !isPlain(c) {
			c = spare
			spare++
		}
		byteNames[b] = c
		namedByte[c] = byte(b)
	}
}

func isPlain(c rune) bool {
	return '!' <= c && c <= '~' || '¡' <= c && c <= '¬' || '®' <= c && c <= 'ÿ'
}

// tokenName is how the files write a token.
func tokenName(token string) string {
	name := make([]byte, 0, 2*len(token))
	for i := range len(token) {
		name = utf8.AppendRune(name, byteNames[token[i]])
	}
	return string(name)
}

// tokenBytes is the inverse of tokenName; false when a character of name
// stands for no byte.
func tokenBytes(name string) (string, bool) {
	token := make([]byte, 0, len(name))
	for _, c := range name {
		b, known := namedByte[c]
		if !known {
			return "", false
		}
		token = append(token, b)
	}
	return string(token), true
}

package launch

import (
	"bufio"
	"errors"
	"io"
	"os"
)

// LineFunc receives a line without its newline; line is valid during the call.
// whole is false for a piece that no newline ends: the line is too long and goes
// on in the next call, or the stream ended.
type LineFunc func(line []byte, whole bool)

// ReadLines calls emit for each line of r until its end. Lines of more than max
// bytes come in pieces of max, so that a stream without newlines needs no more
// memory than another. Every byte but the newlines reaches emit.
func ReadLines(r io.Reader, max int, emit LineFunc) error {
	in := bufio.NewReaderSize(r, min(max, 64<<10))
	var line []byte
	for {
		piece, err := in.ReadSlice('\n')
		ended := err == nil
		if ended {
			piece = piece[:len(piece)-1]
		}
		for len(line)+len(piece) > max {
			room := max - len(line)
			emit(append(line, piece[:room]...), false)
			line, piece = line[:0], piece[room:]
		}
		line = append(line, piece...)
		switch {
		case ended:
			emit(line, true)
			line = line[:0]
		case !errors.Is(err, bufio.ErrBufferFull):
			if len(line) > 0 {
				emit(line, false)
			}
			if errors.Is(err, io.EOF) || errors.Is(err, os.ErrClosed) {
				return nil
			}
			return err
		}
	}
}

" SPDX-License-Identifier: Apache-2.0
" Neovim as a client: connects to $SPOKE_ADDRESS ($SPOKE_MODE: tcp, pipe), runs the script
" $SPOKE_SCRIPT, and leaves in $SPOKE_FINDINGS a line for all that was not as expected, and "done".
let s:findings = []

" Calls `method`, of which the arguments follow.
func Call(method, ...) abort
  return call('rpcrequest', [g:channel, a:method] + a:000)
endfunc

func Same(got, want) abort
  if type(a:got) != type(a:want) || a:got !=# a:want
    call add(s:findings, printf('got %s, not %s', strpart(string(a:got), 0, 200), strpart(string(a:want), 0, 200)))
  endif
endfunc

" An argument comes back as it was.
func Echoes(value) abort
  call Same(Call('demo.EchoService.echo', a:value), a:value)
endfunc

" Checks that a call fails with an error that contains `text`.
func Fails(text, ...) abort
  try
    let got = call('Call', a:000)
    call add(s:findings, printf('no error, but %s, from %s', string(got), string(a:000)))
  catch
    if stridx(v:exception, a:text) < 0
      call add(s:findings, printf('"%s" does not contain: %s', v:exception, a:text))
    endif
  endtry
endfunc

try
  let g:channel = sockconnect($SPOKE_MODE, $SPOKE_ADDRESS, {'rpc': 1})
  source $SPOKE_SCRIPT
catch
  call add(s:findings, v:exception . ' at ' . v:throwpoint)
endtry
call writefile(s:findings + ['done'], $SPOKE_FINDINGS)
qall!

rm -f out.7z
7zz a -bd -mmt=4 -mx=3 -m0=lzma2:c=1m out.7z text >/dev/null

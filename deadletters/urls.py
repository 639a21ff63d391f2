"""The pages of the dead letters."""

from django.urls import path

from deadletters.views import decisions, letter_page, letters

urlpatterns = [
    path("", letters.letter_list, name="dead-letters"),
    path("rows/", letters.letter_rows, name="letter-rows"),
    path("reprocess/", decisions.reprocess_letters, name="reprocess-letters"),
    path("discard/", decisions.discard_letters, name="discard-letters"),
    path("restore/", decisions.restore_letters, name="restore-letters"),
    path("<uuid:letter_id>/", letter_page.letter_page, name="dead-letter"),
    path("<uuid:letter_id>/live/", letter_page.letter_live, name="letter-live"),
    path("<uuid:letter_id>/reprocess/", decisions.reprocess_letter, name="reprocess-letter"),
    path("<uuid:letter_id>/discard/", decisions.discard_letter, name="discard-letter"),
    path("<uuid:letter_id>/restore/", decisions.restore_letter, name="restore-letter"),
]
